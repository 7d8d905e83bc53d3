"""Takes secrets out of traces, and cuts pods or a span of time out of them."""

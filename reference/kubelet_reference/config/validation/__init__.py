"""What a manifest must hold: its fields by the models, then the rules between them.

Upstream: `pkg/apis/core/validation`.
"""

"""Two kubelets, or two records of them, compared scenario by scenario: where they first part."""

"""Situations that kubelets and runtimes of the past have got wrong."""

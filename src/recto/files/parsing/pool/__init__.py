"""The pool of child processes that parse documents."""

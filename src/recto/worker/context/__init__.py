"""Inputs of pages besides the log: persona, tools, files, images, quoted documents."""

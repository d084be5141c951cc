"""Page inputs beside the log: persona, tools, files, images, quoted documents."""

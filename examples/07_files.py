"""Send files and ask the `docs` agent about them, in two turns: it knows them in the second by the same ids.

Needs a server (`recto serve`), found as in 04. Usage: python 07_files.py FILE...
"""

import sys

from recto.client import Client, ClientError, FileRefused

if len(sys.argv) == 1:
    sys.exit("Usage: python 07_files.py FILE...")
client = Client(agent="docs")
try:
    print(client.chat("What is in these files?", files=sys.argv[1:]).answer())
    print(client.chat("Read the files once more.").answer())
except FileRefused as refusal:
    sys.exit(f"A file was not taken: {refusal}")
except ClientError as error:
    sys.exit(f"The turn failed: {error}")

"""What a server, an output folder and Spark need before a run, and what they lack."""

"""The `fleet` command: many servers followed by one process, each as `run` follows one."""

"""MySQL and MariaDB binlogs into Arrow files that Spark reads as a stream."""

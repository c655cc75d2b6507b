"""Where requests come from: generators and traces, one a file."""

"""What users write and what is made of it: the YAML files, their schema, workloads, assembly, studies."""

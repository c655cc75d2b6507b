"""The roof: the YAML files, their schema, workloads and trace readers, assembly and studies."""

"""Who we are to the API server: service account, kubeconfig, exec plugins."""

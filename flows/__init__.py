"""Prefect flows and deployments over the library; the library itself never imports Prefect."""

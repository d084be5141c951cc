"""Spreadsheets."""

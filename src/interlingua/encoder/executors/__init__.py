"""Executors, which compute layers, training passes and exact searches, and the choice of one."""

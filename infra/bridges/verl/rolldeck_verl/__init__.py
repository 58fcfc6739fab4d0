"""VeRL's rollouts from a driven run of Rolldeck, by its hook:
`agent_loop_manager_class: rolldeck_verl.manager.RolldeckAgentLoopManager`."""

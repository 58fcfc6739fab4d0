"""SkyRL-train's rollouts from a driven run of Rolldeck: `from rolldeck_skyrl.generator import RolldeckGenerator`."""

"""Running rollouts: one episode, the scheduler of many, and what a run is made of."""

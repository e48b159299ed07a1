module replayd/test/rollouts

go 1.26.0

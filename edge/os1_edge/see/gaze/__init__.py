"""Where the wearer looks: near-eye frames to pupil, gaze on the scene picture, fixations and blinks."""

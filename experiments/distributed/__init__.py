"""The processes of a run on Ray: replay, learner, actors, evaluator and collector."""

"""`method: kd` among LKC jobs: every group is cut by itself (semantics §11)."""

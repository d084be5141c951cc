"""Users: what is kept of them.

- `profile`: routes of profiles and tiers
- `me`: routes of who one is, and of a user's own data, to take away and to delete
- `savings_route`: the route of what folding saved a user
"""

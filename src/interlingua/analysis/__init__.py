"""Why an encoder is as good as it is: how its space treats languages, what its tokens and its
attention hold.
"""

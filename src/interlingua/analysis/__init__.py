"""Why an encoder is as good as it is: its languages, its tokens and its attention, looked into."""

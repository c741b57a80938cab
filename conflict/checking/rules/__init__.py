"""
The rules of `check`: each looks at the whole subject and yields findings of its own codes.
"""

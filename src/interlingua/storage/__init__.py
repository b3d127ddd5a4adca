"""All access to the disk: atomic files, locks, compression, records, workspaces, journals, JSON.

``formats`` lists every format with its version, ``record`` reads and writes the file that describes
a folder, ``workspace`` is a folder in which an interrupted run resumes, ``journal`` lists finished
parts of a long step, ``digests`` finds damaged files, and ``json_text`` is the only reader of JSON.
These modules use ``files`` (atomic writes), ``locks``, ``temporary``, ``limits`` (untrusted files),
``compression``, ``content_kinds``, ``arrays``, ``tensor_files`` and ``remote``.
"""

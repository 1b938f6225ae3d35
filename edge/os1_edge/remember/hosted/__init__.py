"""Memories that lie on a Milvus server, sealed by the wearer's key; off unless moved there (docs/hosted.md).

May import the rest of ``remember``; of the rest only ``recall``, ``forget``, ``export`` and the commands ask
for it, where a memory was moved. pymilvus (extra ``hosted``) is imported when a server is spoken to.
"""

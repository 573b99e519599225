"""pgversus: is PostgreSQL A faster or slower than B on this work, by how much, and how sure?"""

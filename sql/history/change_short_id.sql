-- Maximum bytes of an id in the index change_entry_short_id. An index row has at most 2,704 bytes, and an id may have
-- 4,000. The few entries with longer ids have an index of their own.
create function change_short_id() returns integer language sql immutable parallel safe as 'select 1000';

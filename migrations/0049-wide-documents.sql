-- 1: the document has so many values that the index for values leaves it out. A number rather than a boolean, because the
-- planner guesses that half of the rows of a new table have each boolean.
alter table custom_instance add column wide smallint not null default 0;

-- In a cell of an actor with so many kinds, tallies of three types are clearly less to add up: see change_fold_actor_types. A later version may only
-- make it smaller: a fold looks for such tallies where the tenant has so many kinds.
create function change_many_kinds() returns integer language sql immutable parallel safe as 'select 8';

-- The number of an actor's entries from which a cell has tallies of the actor's kinds; in cells with fewer they may be
-- left from before. Reading fewer entries by their index takes about as long as those tallies, most of which would
-- count one or two. It may grow, but not shrink: change_count relies on tallies of earlier folds.
create function change_dense_pairs() returns bigint language sql immutable parallel safe as 'select 256::bigint';

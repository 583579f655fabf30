-- A cell in which an actor has so many entries has tallies of the actor's kinds; in others they may be from before. To
-- read fewer entries by their index takes about as long as those tallies, of which most would count one entry or two.
-- It may grow, but not fall: change_count relies on tallies that earlier folds have made.
create function change_dense_pairs() returns bigint language sql immutable parallel safe as 'select 256::bigint';

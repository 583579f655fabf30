-- Whether the call of a reservation may have left. One that has not is given back when its lease ends, and not charged.
-- Those that are there may have left.
alter table completion_reservation add column sent boolean not null default true;

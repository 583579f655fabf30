/** Documents are divided into so many lanes, from 0. */
export const lanes = 16;

/** The lane of rows that only name the actor of their transaction. No relay takes it: the rows are read beside those of the transaction. */
export const actorLane = -1;

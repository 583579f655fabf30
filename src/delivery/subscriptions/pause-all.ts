/**
 * SQL for the database of a restored backup: pauses all subscriptions. The database that was backed up may go on delivering. What is
 * paused or suspended already stays what it is.
 */
export const pauseAll = `
  update subscription_state
    set state = case when state in ('active', 'retrying') then 'paused' else state end,
        reason = case when state in ('active', 'retrying') then 'backup' else reason end, holder = null, held_until = null`;

/** SQL that pauses all subscriptions of a restored backup, since the original database may still deliver. */
export const pauseAll = `
  update subscription_state
    set state = case when state in ('active', 'retrying') then 'paused' else state end,
        reason = case when state in ('active', 'retrying') then 'backup' else reason end, holder = null, held_until = null`;

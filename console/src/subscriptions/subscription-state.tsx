import type { Subscription } from '@annals/client';
import { allows, readsHistory } from '../api/session.ts';
import { Badge } from '../components/states.tsx';

const tones = { active: 'good', retrying: 'warn', paused: 'plain', suspended: 'bad' } as const;

export function SubscriptionState({ state }: Pick<Subscription, 'state'>) {
  return <Badge tone={tones[state]}>{state}</Badge>;
}

/** Why it is paused or suspended, and what to do about it. */
export const reasons: Readonly<Record<NonNullable<Subscription['reason']>, readonly [string, string]>> = {
  client: ['It was paused by a client.', 'Resume it: it continues where it stopped.'],
  disabled: ['It is not enabled.', 'Edit it and choose Enabled: it continues where it stopped.'],
  maker: [
    'The client that made it is revoked, or has lost a scope that it needs.',
    'Take it over: your client is its maker from then on, and it continues where it stopped.',
  ],
  restored: [
    'The database was restored to an earlier state, so its position in the history is lost.',
    'Resume it, and choose where it continues.',
  ],
  backup: [
    'The database was restored from a backup, and nothing is sent from it unasked.',
    'Resume it once no other copy of the database delivers: it continues where it stopped.',
  ],
  gone: [
    'The target answered that it is gone (410).',
    'Correct the target, then resume: it continues where it stopped.',
  ],
  failures: [
    'Every delivery has failed for 5 days.',
    'Correct the cause, which the attempts show, then resume: it continues where it stopped.',
  ],
};

type Outcome = 'delivered' | 'failed' | 'refused' | 'suspended';

const outcomeTones = { delivered: 'good', failed: 'bad', refused: 'bad', suspended: 'bad' } as const;

export function OutcomeBadge({ outcome }: { readonly outcome: Outcome }) {
  return <Badge tone={outcomeTones[outcome]}>{outcome}</Badge>;
}

/** Whether the session may pause, test and delete subscriptions. */
export function mayManage(): boolean {
  return allows('changelog.subscription_manage');
}

/** Whether it may make, change, resume and replay them too: who has changes sent has to be allowed to read them. */
export function mayChange(): boolean {
  return mayManage() && readsHistory();
}

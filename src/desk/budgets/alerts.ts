import { uuidOf } from '../../core/text-hash.ts';
import { dateOf, dayOf } from '../../http/days.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { sumCalls } from '../calls/store.ts';
import { type Budget, eachUser } from './schemas.ts';
import {
  alertKey,
  type BudgetTerms,
  changesOf,
  dropAlerts,
  maxAlertsOfPeriod,
  noteAlert,
  noteLooked,
  readAlerts,
  readBudgets,
  readFigures,
  readUserFigures,
} from './store.ts';

/** Sends an e-mail when a period has spent part of its budget, once per threshold and period, and user of `*`. */
export interface BudgetAlerts {
  /** Checks the budgets of a tenant whose totals have changed. */
  look(tenant: string): Promise<void>;
}

interface AlertOptions {
  db: Database;
  /** Queues an e-mail, sent only if the transaction commits. */
  queueMail(
    transaction: DatabaseTransaction,
    mail: { tenant: string; to: string; subject: string; text: string; messageId: string },
  ): Promise<void>;
  /** Undefined where the tenant has set none. */
  notificationEmail(tenant: string): Promise<string | undefined>;
  /** Milliseconds since 1970. */
  now: () => number;
}

/** Days. */
const twoMonths = 62;

/** A reached threshold. */
interface Reached {
  readonly budget: Budget;
  readonly first: number;
  readonly spent: string;
  readonly threshold: number;
  /** Of a budget of each user. */
  readonly user: string | undefined;
}

export function createBudgetAlerts({ db, queueMail, notificationEmail, now }: AlertOptions): BudgetAlerts {
  async function tell(tenant: string, to: string | undefined, reached: Reached): Promise<void> {
    const { budget, first, threshold, user: name = '' } = reached;
    await inTransaction(db, async (transaction) => {
      const isFirst = await noteAlert(transaction, tenant, { budget: budget.id, first, threshold, name });
      if (isFirst && to !== undefined) await queueMail(transaction, { tenant, to, ...mailOf(tenant, reached) });
    });
  }

  return {
    async look(tenant) {
      await sumCalls(db, tenant);
      const changes = await changesOf(db, tenant);
      if (changes === undefined) return;
      const today = dayOf(now());
      const to = await notificationEmail(tenant);
      for (const { document, ...terms } of await readBudgets(db, tenant)) {
        for (const reached of await thresholdsOf(db, tenant, {
          budget: JSON.parse(document) as Budget,
          terms,
          today,
        })) {
          await tell(tenant, to, reached);
        }
      }
      await dropAlerts(db, tenant, today - twoMonths);
      await noteLooked(db, tenant, changes);
    },
  };
}

/** The thresholds reached in this period and in the previous one, whose last calls may end in this one. */
async function thresholdsOf(
  db: Database,
  tenant: string,
  { budget, terms, today }: { budget: Budget; terms: BudgetTerms; today: number },
): Promise<Reached[]> {
  const now = await figuresOf(db, tenant, terms, today);
  const periods = [now];
  // No alerts for a period that had ended before the budget was created.
  if (terms.period !== 'lifetime' && dayOf(Date.parse(budget.metadata.createdAt)) < now.first) {
    periods.push(await figuresOf(db, tenant, terms, now.first - 1));
  }
  const limit = BigInt(terms.limitCost ?? terms.limitTokens ?? 0);
  const reached = periods.flatMap(({ first, amounts }) =>
    amounts.flatMap(({ user, spent, units }) =>
      budget.alerts
        .filter((threshold) => units !== '0' && BigInt(units) * 100n >= limit * BigInt(threshold))
        .map((threshold) => ({ budget, first, spent, threshold, user })),
    ),
  );
  if (reached.length === 0) return reached;
  const noted = await readAlerts(db, tenant, budget.id);
  return reached.filter(({ first, threshold, user = '' }) => !noted.has(alertKey({ first, threshold, name: user })));
}

/** What the period of this day has spent: one amount, or that of each user whom a key fixes. */
async function figuresOf(
  db: Database,
  tenant: string,
  terms: BudgetTerms,
  day: number,
): Promise<{ first: number; amounts: { user: string | undefined; spent: string; units: string }[] }> {
  if (terms.by === 'each user') {
    const max = maxAlertsOfPeriod;
    const { first, users } = await readUserFigures(db, tenant, terms, { day, isFixed: true, max });
    return { first, amounts: users };
  }
  const { first, ...amount } = await readFigures(db, tenant, terms, day);
  return { first, amounts: [{ ...amount, user: undefined }] };
}

function mailOf(tenant: string, { budget, first, spent, threshold, user = budget.user }: Reached) {
  const { id, name, client, agent, model, period, limitUsd } = budget;
  const of =
    client !== undefined
      ? `the client ${client}`
      : agent !== undefined
        ? `the agent ${agent}`
        : model !== undefined
          ? `the model ${model}`
          : user !== undefined
            ? `the user ${user}`
            : 'all calls';
  const amount = (figure: string) => (limitUsd === undefined ? `${figure} tokens` : `$${figure}`);
  const when = { day: `on ${dateOf(first)}`, month: `in ${dateOf(first).slice(0, 7)}`, lifetime: 'since ever' }[period];
  const text = [
    `The budget ${name === undefined ? id : `"${name}" (${id})`} of the tenant ${tenant} has reached ${threshold} %:`,
    `${of} spent ${amount(spent)} of ${amount(limitUsd ?? String(budget.limitTokens))} ${when} (UTC).`,
    '',
    `Calls${user === undefined ? '' : ' of keys with this user'} that may need more than what is left get 403 quota_exceeded.`,
    `This e-mail is sent once for each threshold and period${budget.user === eachUser ? ', and user' : ''}.`,
  ].join('\n');
  const ofUser = budget.user === eachUser ? `.${uuidOf(String(user))}` : '';
  const messageId = `<budget.${tenant}.${id}.${first}.${threshold}${ofUser}@annals>`;
  return {
    subject: `Annals: the budget ${name === undefined ? id : `"${name}"`} has reached ${threshold} %`,
    text,
    messageId,
  };
}

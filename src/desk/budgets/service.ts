import { randomUUID } from 'node:crypto';
import { AnnalsError, type ErrorDetail, invalidBody } from '../../core/errors.ts';
import { faultOfChosenId } from '../../http/chosen-id.ts';
import type { Author } from '../../http/credentials.ts';
import { dateOf, dayOf } from '../../http/days.ts';
import type { DocumentLists, ListParameters, Page, PageRequest } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import { projectedJson } from '../../query/json-projection.ts';
import { metadataOf, notFound, ownDocuments } from '../../recording/documents/own-documents.ts';
import { sumCalls } from '../calls/store.ts';
import { type Budget, type BudgetBody, type BudgetUse, eachUser, maxBudgets, maxUsers } from './schemas.ts';
import { type BudgetTerms, budgetRows, budgetTable, countBudgets, readFigures, readUserFigures } from './store.ts';

/** Limits on the usage and cost of a tenant's calls (ai-gateway: costs and budgets), returned as JSON texts. */
export interface Budgets {
  /** Includes its use. */
  find(tenant: string, id: string): Promise<string>;
  list(tenant: string, query: ListParameters, page: PageRequest): Promise<Page>;
  /** Returns the id: that of the body, or a random one. */
  create(author: Author, body: BudgetBody): Promise<string>;
  put(author: Author, id: string, body: BudgetBody): Promise<'created' | 'replaced'>;
  remove(author: Author, id: string): Promise<void>;
}

interface Sent {
  readonly body: BudgetBody;
  readonly version?: number | undefined;
}

const noun = 'budget';

/** Creations of a tenant's budgets are serialized, so that their number is still correct at commit. */
export function createBudgets(options: {
  db: Database;
  documents: DocumentLists;
  now: () => number;
  /** Resolves when no new call can have read that the tenant has no budgets. */
  keyCachesExpired: () => Promise<void>;
}): Budgets {
  const { db, documents, now, keyCachesExpired } = options;
  const budgets = ownDocuments<Sent, BudgetTerms>(options, {
    noun,
    table: budgetTable,
    entity: 'annals-budget',
    async written({ body }, writing, stored) {
      const { tenant } = writing.author;
      if (stored === undefined) await lockTenant(writing.transaction, tenant);
      const isFull = stored === undefined && (await countBudgets(writing.transaction, tenant)) >= maxBudgets;
      const before = stored && (JSON.parse(stored.document) as Budget);
      const { id: _id, use: _use, metadata: _sent, alerts = [50, 80, 100], ...members } = body;
      const sorted = alerts.toSorted((a, b) => a - b);
      const metadata = metadataOf(writing, before?.metadata.createdAt);
      const budget: Budget = { id: writing.id, ...members, alerts: sorted, metadata };
      const document = JSON.stringify(budget);
      return {
        row: { document, fields: projectedJson(document), ...termsOf(body) },
        name: budget.name,
        async also() {
          if (isFull) throw new AnnalsError('validation_violation', `A tenant has at most ${maxBudgets} budgets.`);
        },
      };
    },
    nameOf: (document) => (JSON.parse(document) as Budget).name,
  });

  return {
    remove: budgets.remove,

    list: (tenant, query, page) => documents.page(budgetRows(tenant), query, page),

    async find(tenant, id) {
      const found = await budgetTable.find(db, tenant, id);
      if (found === undefined) throw notFound(noun);
      const { metadata, ...members } = JSON.parse(found.document) as Budget;
      return JSON.stringify({ ...members, use: await useOf(db, tenant, found, now()), metadata });
    },

    async create(author, body) {
      refuseFaults(body);
      const { id = randomUUID() } = body;
      await budgets.create(author, id, { body });
      await keyCachesExpired();
      return id;
    },

    async put(author, id, body) {
      const fault = body.id === undefined || body.id === id ? faultOfChosenId(id) : 'must be that of the path';
      if (fault !== undefined) throw invalidBody({ field: 'id', message: fault });
      refuseFaults(body);
      const outcome = await budgets.put(author, id, { body, version: body.metadata?.version });
      if (outcome === 'created') await keyCachesExpired();
      return outcome;
    },
  };
}

async function useOf(db: Database, tenant: string, terms: BudgetTerms, now: number): Promise<BudgetUse> {
  await sumCalls(db, tenant);
  const amounts = ({ spent, reserved }: { spent: string; reserved: string }) =>
    terms.limitTokens === null
      ? { spentUsd: spent, reservedUsd: reserved }
      : { spentTokens: Number(spent), reservedTokens: Number(reserved) };
  const day = dayOf(now);
  if (terms.by !== 'each user') {
    const figures = await readFigures(db, tenant, terms, day);
    return { since: dateOf(figures.first), ...amounts(figures) };
  }
  const { first, users } = await readUserFigures(db, tenant, terms, { day, isFixed: false, max: maxUsers });
  return { since: dateOf(first), users: users.map(({ user, ...figures }) => ({ user, ...amounts(figures) })) };
}

const selectors = ['client', 'agent', 'model', 'user'] as const;

function termsOf(body: BudgetBody): BudgetTerms {
  const by = selectors.find((name) => body[name] !== undefined);
  const { period, limitUsd, limitTokens = null } = body;
  const limitCost = limitUsd === undefined ? null : picoOf(limitUsd);
  const limit = { period, limitCost, limitTokens };
  if (body.user === eachUser) return { by: 'each user', name: '', ...limit };
  return { by: by ?? 'all', name: (by && body[by]) ?? '', ...limit };
}

/** @example picoOf('2.5'); // '2500000000000' */
function picoOf(dollars: string): string {
  const [whole = '', fraction = ''] = dollars.split('.');
  return `${whole}${fraction.padEnd(12, '0')}`;
}

function refuseFaults(body: BudgetBody): void {
  const named = selectors.filter((name) => body[name] !== undefined);
  const faults: ErrorDetail[] = named
    .slice(1)
    .map((field) => ({ field, message: `must be left out where there is ${named[0]}: a budget is of one thing` }));
  if ((body.limitUsd === undefined) === (body.limitTokens === undefined)) {
    faults.push({ field: 'limitUsd', message: 'must be there, or else limitTokens: one of the two' });
  }
  if (faults.length > 0) throw invalidBody(...faults);
}

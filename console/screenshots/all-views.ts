import type { Page } from 'playwright-core';
import {
  agentId,
  disabledAgentId,
  sessionId,
  shelfId,
  signInAtProvider,
  subscriptionId,
  toolsAgentId,
  viewId,
} from './fill-demo.ts';
import { type Picture, shows } from './take.ts';

const claims = address('history', { q: 'entity:WARRANTY_CLAIM type:update' });
const claimType = { type: 'WARRANTY_CLAIM' };
const product = { entity: 'product', id: 'brisk-go' };
const lists = address('history', { q: 'entity:order type:update path:items' });
const found = address('history', {
  q: 'compoundLogicalQuery:((change:elemMatch(before:*dent*)) OR (change:elemMatch(after:*dent*))) occurredAt:>="1970-01-01T00:00:00Z"',
});
const asOn = address('document', { ...product, at: daysAgo(30), with: 'now' });
const subscription = address('subscriptions/one', { id: subscriptionId });

/** Every view of the console, in the order of the navigation, with its panels, dialogs and empty states. */
export const allViews: readonly Picture[] = [
  { name: 'sign-in', address: '', options: { storageState: { cookies: [], origins: [] } }, ready: shows('form') },
  { name: 'guides', address: '../docs/guides', ready: shows('.guide-index') },
  { name: 'guide', address: '../docs/guides/operations', ready: shows('.guide h1') },
  { name: 'no-such-page', address: 'nowhere', ready: shows('.empty-state') },
  { name: 'overview', address: 'overview', ready: shows('.bar-chart canvas') },
  { name: 'history', address: 'history', ready: shows('.bar-chart canvas') },
  {
    name: 'history-suggestions',
    address: 'history',
    async ready(page) {
      await page.locator('.entry-row').first().waitFor();
      await page.getByRole('combobox', { name: 'Query' }).focus();
      await page.keyboard.type('type:update actor:j');
      await page.getByRole('option').first().waitFor();
    },
  },
  {
    name: 'history-fault',
    address: address('history', { q: 'entity:order status:OPEN' }),
    ready: shows('[role=alert]'),
  },
  { name: 'history-word', address: address('history', { q: 'mug' }), ready: shows('.found-words, [role=alert]') },
  {
    name: 'history-empty',
    address: address('history', { q: 'entity:quote type:delete actor:Nobody' }),
    ready: shows('.empty-state'),
  },
  { name: 'history-days', address: 'history', ready: clicks('.entry-row', 'Days…') },
  { name: 'history-export', address: 'history', ready: clicks('.entry-row', 'Export') },
  { name: 'view', address: address('history', { view: viewId }), ready: shows('.entry-row') },
  { name: 'view-save', address: address('history', { q: 'entity:order' }), ready: clicks('.entry-row', 'Save view') },
  { name: 'view-gone', address: address('history', { view: 'gone' }), ready: shows('.empty-state') },
  { name: 'change', address: claims, ready: openChange },
  { name: 'change-before-and-after', address: claims, ready: openChangeAs('Before and after', '.json-tree') },
  { name: 'change-json', address: claims, ready: openChangeAs('JSON', '.lines-view') },
  { name: 'change-list', address: lists, ready: openList },
  { name: 'change-found', address: found, ready: openFound },
  { name: 'change-proof', address: claims, ready: saveProof },
  { name: 'documents', address: address('document', { text: 'alba' }), ready: shows('.document-link') },
  {
    name: 'search',
    address: 'history',
    async ready(page) {
      await page.locator('.entry-row').first().waitFor();
      await page.keyboard.press('/');
      await page.getByRole('combobox', { name: 'Search everything' }).waitFor();
      await page.keyboard.type('pri');
      await page.getByRole('option', { name: 'price.amount' }).waitFor();
    },
  },
  { name: 'document', address: address('document', { ...product, changes: '1' }), ready: shows('.json-tree') },
  { name: 'document-fields', address: address('document', { ...product, show: 'fields' }), ready: shows('tbody tr') },
  {
    name: 'document-compared',
    address: address('document', { ...product, changes: '6', with: '2' }),
    ready: shows('.path-item'),
  },
  { name: 'document-as-on', address: asOn, ready: shows('.path-item') },
  {
    name: 'document-future',
    address: address('document', { ...product, at: '2096-01-01T00:00:00Z' }),
    ready: shows('.note'),
  },
  {
    name: 'document-deleted',
    address: 'history?q=entity%3Aproduct+type%3Adelete+occurredAt%3A%3E%3D%221970-01-01T00%3A00%3A00Z%22',
    async ready(page) {
      const row = page.locator('.entry-document').first();
      const id = (await row.locator('strong').textContent()) ?? '';
      await page.goto(new URL(address('document', { entity: 'product', id }), page.url()).href);
      await page.locator('.json-tree').waitFor();
    },
  },
  {
    name: 'document-bring-back',
    address: address('document', { entity: 'SHELF', id: shelfId, changes: '1' }),
    async ready(page) {
      await page.getByRole('button', { name: 'Bring back' }).click();
      await page.getByRole('dialog').locator('.path-item').first().waitFor();
    },
  },
  {
    name: 'document-before',
    address: address('document', { entity: 'SHELF', id: shelfId, changes: '1' }),
    ready: shows('.json-tree'),
  },
  { name: 'document-unknown', address: address('document', { ...product, id: 'none' }), ready: shows('[role=alert]') },
  {
    name: 'actor',
    address: 'history',
    async ready(page) {
      await page.locator('.entry-row').first().waitFor();
      const name = (await page.locator('.entry-actor').last().textContent()) ?? '';
      await page.goto(new URL(address('actor', { name }), page.url()).href);
      await page.getByRole('heading', { name }).waitFor();
      await page.locator('.entry-row').first().waitFor();
    },
  },
  { name: 'actor-empty', address: address('actor', { name: 'Nobody' }), ready: shows('.empty-state') },
  { name: 'people', address: 'people', ready: shows('tbody tr') },
  { name: 'subscriptions', address: 'subscriptions', ready: shows('tbody tr') },
  { name: 'subscription', address: subscription, ready: shows('tbody tr') },
  { name: 'subscription-attempt', address: subscription, ready: openAttempt },
  { name: 'subscription-delete', address: subscription, ready: clicks('tbody tr', 'Delete the subscription') },
  { name: 'subscription-new', address: 'subscriptions/new', ready: shows('form') },
  {
    name: 'subscription-alert',
    address: address('subscriptions/one', { id: 'deletions' }),
    ready: shows('.facts'),
  },
  { name: 'connect', address: 'connect', ready: shows('.card') },
  { name: 'accesses', address: 'security/accesses', ready: shows('tbody tr') },
  { name: 'security-sessions', address: 'security/sessions', ready: shows('tbody tr') },
  {
    name: 'security-session-end',
    address: 'security/sessions',
    async ready(page) {
      await page
        .getByRole('button', { name: /^End the session/ })
        .first()
        .click();
      await page.getByRole('dialog').waitFor();
    },
  },
  { name: 'security-sign-in', address: 'security/sign-in', ready: testSignIn },
  { name: 'clients', address: 'security/clients', ready: shows('tbody tr') },
  {
    name: 'clients-empty',
    address: address('security/clients', { q: 'name:none' }),
    ready: shows('.empty-state'),
  },
  { name: 'client-new', address: 'security/clients', ready: clicks('tbody tr', 'New client') },
  { name: 'client-narrow', address: 'security/clients', ready: clicks('tbody tr', 'Narrow Billing') },
  { name: 'client-rotate', address: 'security/clients', ready: clicks('tbody tr', 'Rotate Billing') },
  { name: 'client-revoke', address: 'security/clients', ready: clicks('tbody tr', 'Revoke Billing') },
  { name: 'keys', address: 'security/keys', ready: shows('tbody tr') },
  { name: 'key-new', address: 'security/keys', ready: clicks('tbody tr', 'New key') },
  {
    name: 'key-secret',
    address: 'security/keys',
    async ready(page) {
      await clicks('tbody tr', 'New key')(page);
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('changelog.changelog_read').check();
      await dialog.getByRole('button', { name: 'Make' }).click();
      await dialog.getByText('is shown only once').waitFor();
    },
  },
  { name: 'proof', address: 'security/proof', ready: shows('h2') },
  { name: 'agents', address: 'desk/agents', ready: shows('tbody tr') },
  { name: 'costs', address: 'desk/costs', ready: shows('.bar-chart canvas') },
  { name: 'calls', address: 'desk/calls', ready: shows('tbody tr') },
  { name: 'budgets', address: 'desk/budgets', ready: shows('.quota-bar') },
  { name: 'agent', address: address('desk/agent', { id: agentId }), ready: shows('.facts') },
  { name: 'agent-disabled', address: address('desk/agent', { id: disabledAgentId }), ready: shows('.failure') },
  { name: 'agent-tools', address: address('desk/agent', { id: toolsAgentId }), ready: toToolServers },
  {
    name: 'agent-tools-choice',
    address: address('desk/agent', { id: toolsAgentId }),
    async ready(page) {
      await page.getByRole('button', { name: 'Choose tools' }).click();
      await page.locator('.offered-tool').first().waitFor();
    },
  },
  {
    name: 'agent-tools-server',
    address: address('desk/agent', { id: toolsAgentId }),
    async ready(page) {
      await page.getByRole('button', { name: 'Edit manuals' }).click();
      await page.getByRole('button', { name: 'Add a header' }).click();
    },
  },
  { name: 'agent-edit', address: address('desk/agent/edit', { id: agentId }), ready: shows('form') },
  {
    name: 'agent-new',
    address: 'desk/agent/new',
    async ready(page) {
      await page.getByLabel('Temperature').fill('7');
      await page.getByText('A number from 0 to 2.').waitFor();
    },
  },
  { name: 'chat-choice', address: 'desk/chat', ready: shows('.empty-state') },
  {
    name: 'chat',
    address: address('desk/chat', { agent: agentId }),
    async ready(page) {
      for (const [index, message] of ['Who changed the price of the Brisk Go?', 'And why?'].entries()) {
        await page.getByLabel('Message').fill(message);
        await page.keyboard.press('Enter');
        await page.getByRole('link', { name: 'Tokens and log' }).nth(index).waitFor();
      }
    },
  },
  { name: 'sessions', address: 'desk/sessions', ready: shows('tbody tr') },
  { name: 'session', address: address('desk/sessions', { session: sessionId }), ready: shows('.turn') },
  { name: 'requests', address: 'desk/requests', ready: shows('tbody tr') },
  {
    name: 'request',
    address: address('desk/requests', { q: 'severity:ERROR' }),
    async ready(page) {
      await page.locator('.row-link').first().click();
      await page.locator('.log-lines').waitFor();
    },
  },
  {
    name: 'completions',
    address: 'desk/completions',
    async ready(page) {
      await page.getByLabel('Message 2', { exact: true }).fill('What is a history good for?');
      await page.getByRole('button', { name: 'Complete' }).click();
      await page.getByText('autumn sale').waitFor();
    },
  },
  { name: 'models', address: 'desk/models', ready: shows('.card') },
  { name: 'types', address: 'data/types', ready: shows('tbody tr') },
  { name: 'type-edit', address: address('data/type/edit', claimType), ready: shows('textarea') },
  { name: 'type-new', address: 'data/type/new', ready: shows('textarea') },
  { name: 'instances', address: address('data/type', claimType), ready: shows('tbody tr') },
  {
    name: 'instances-empty',
    address: address('data/type', { ...claimType, q: '_id:none' }),
    ready: shows('.empty-state'),
  },
  { name: 'instance', address: address('data/type', claimType), ready: openInstance },
  {
    name: 'instance-edit',
    address: address('data/type', claimType),
    async ready(page) {
      await openInstance(page);
      await page.getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel('Document').waitFor();
    },
  },
  { name: 'configuration', address: 'data/configuration', ready: shows('tbody tr') },
  { name: 'setting', address: 'data/configuration', ready: clicks('tbody tr', 'Edit rates') },
  { name: 'setting-delete', address: 'data/configuration', ready: clicks('tbody tr', 'Delete rates') },
  { name: 'jobs', address: 'data/jobs', ready: shows('tbody tr') },
  {
    name: 'job',
    address: 'data/jobs',
    async ready(page) {
      await page.locator('tr', { hasText: 'Chat' }).locator('.row-link').click();
      await page.getByRole('complementary').locator('.facts').waitFor();
    },
  },
];

/** A time of that day, as an address has it. */
function daysAgo(days: number): string {
  return `${new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)}T12:00:00Z`;
}

function address(path: string, parameters: Readonly<Record<string, string>>): string {
  return `${path}?${new URLSearchParams(parameters)}`;
}

/** Waits for an element, clicks a button, and waits for the dialog that it opens. */
function clicks(first: string, button: string): Picture['ready'] {
  return async (page) => {
    await page.locator(first).first().waitFor();
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('dialog').waitFor();
  };
}

/** On a narrow screen the actor stands in the middle of the row. */
async function openRow(page: Page, hasText: string): Promise<void> {
  await page
    .locator('.entry-link', { hasText })
    .first()
    .click({ position: { x: 12, y: 12 } });
}

async function openChange(page: Page): Promise<void> {
  await openRow(page, 'resolution');
  await page.locator('.path-item').first().waitFor();
}

function openChangeAs(view: string, content: string): Picture['ready'] {
  return async (page) => {
    await openChange(page);
    await page.getByRole('button', { name: view, exact: true }).click();
    await page.getByRole('complementary').locator(content).first().waitFor();
  };
}

async function openList(page: Page): Promise<void> {
  await openRow(page, 'items');
  await page.locator('.side-panel .list-table').first().waitFor();
}

async function openFound(page: Page): Promise<void> {
  await openRow(page, '');
  await page.locator('.side-panel .path-item').first().waitFor();
}

async function saveProof(page: Page): Promise<void> {
  await openChange(page);
  await page.getByRole('button', { name: 'Proof', exact: true }).click();
  await page.locator('.saved-proof').waitFor();
}

async function openAttempt(page: Page): Promise<void> {
  await page
    .locator('tr', { hasText: 'failed' })
    .getByRole('button', { name: /^Details/ })
    .click();
  await page.getByRole('region', { name: 'The request' }).waitFor();
}

/** Signs in at the provider, without which there is no result. */
async function testSignIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Test the sign-in' }).click();
  await signInAtProvider(page);
  await page.getByText('Applies.').waitFor();
}

async function openInstance(page: Page): Promise<void> {
  await page.locator('.row-link').first().click();
  await page.getByRole('complementary').locator('.json-tree').waitFor();
}

async function toToolServers(page: Page): Promise<void> {
  await page.locator('.tool-list li').first().waitFor();
  await page.locator('.tool-servers').scrollIntoViewIfNeeded();
}

/** The pictures of docs/images. */
export const guidePictures: readonly Picture[] = [
  { name: 'console-overview', address: 'overview', ready: shows('.bar-chart canvas') },
  { name: 'console-history', address: 'history', ready: shows('.bar-chart canvas') },
  {
    name: 'console-change',
    address: claims,
    options: { viewport: { width: 1440, height: 800 } },
    ready: openChange,
  },
  {
    name: 'console-document',
    address: `document?${new URLSearchParams({ entity: 'product', id: 'brisk-go', changes: '1' })}`,
    ready: shows('.json-tree'),
  },
  { name: 'console-list', address: lists, ready: openList },
  { name: 'console-as-on', address: asOn, ready: shows('.path-item') },
  { name: 'console-text', address: found, ready: openFound },
  { name: 'console-attempt', address: subscription, isFilled: true, ready: openAttempt },
  {
    name: 'console-sessions',
    address: 'security/sessions',
    options: { viewport: { width: 1280, height: 480 } },
    isFilled: true,
    ready: shows('tbody tr'),
  },
  {
    name: 'console-sign-in',
    address: 'security/sign-in',
    options: { viewport: { width: 1280, height: 1000 } },
    isFilled: true,
    ready: testSignIn,
  },
  { name: 'console-clients', address: 'security/clients', isFilled: true, ready: shows('tbody tr') },
  {
    name: 'console-query-dark',
    address: 'history',
    options: { colorScheme: 'dark' },
    ready: async (page) => {
      await page.getByRole('combobox', { name: 'Query' }).focus();
      await page.keyboard.type('type:update actor:j');
      await page.getByRole('option').first().waitFor();
    },
  },
];

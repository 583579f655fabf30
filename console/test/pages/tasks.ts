import { readFile } from 'node:fs/promises';
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { startReceiver } from '../../../test/support/vendor/receiver.ts';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { totalOf } from '../support/history-page.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';
import { sealHistory } from '../support/seal-history.ts';

/** A task takes at most so many clicks, from the page that opens after the sign-in. */
const maxClicks = 6;

const widths = [
  [1_440, 900],
  [390, 844],
] as const;

let attempts = 0;
/** For ids and names, which a repeated test must not find from before. */
function fresh(width: number): string {
  attempts += 1;
  return `${width}x${attempts}`;
}

/** A person at work. Typing is free; each click and each choice in a list counts. */
class Visitor {
  #clicks = 0;
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async click(target: Locator): Promise<void> {
    this.#clicks += 1;
    await target.click();
  }

  async choose(list: Locator, label: string): Promise<void> {
    this.#clicks += 1;
    await list.selectOption({ label });
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' });
  }

  /** Opens what the words find first. */
  async find(words: string, option: string | RegExp = words): Promise<void> {
    await this.click(this.button('Search').first());
    await this.page.getByRole('combobox', { name: 'Search everything' }).fill(words);
    await this.page.getByRole('option', { name: option }).first().waitFor();
    await this.page.keyboard.press('Enter');
    await this.page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  async save(target: Locator): Promise<string> {
    const [download] = await Promise.all([this.page.waitForEvent('download'), this.click(target)]);
    return await readFile(await download.path(), 'utf8');
  }

  async done(): Promise<void> {
    expect(await sidewaysRoom(this.page)).toBe(0);
    expect(this.#clicks).toBeLessThanOrEqual(maxClicks);
  }
}

/** What people come for: each task by clicks and typed words, without a query, in a wide and in a narrow window. */
export function taskTests(the: () => ConsoleUnderTest): void {
  const visit = async (width: number, height: number) => {
    const page = await the().open('overview', { width, height });
    await page.getByRole('heading', { level: 1 }).waitFor();
    return new Visitor(page);
  };

  test.each(widths)('who changed this price, and when (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const entityId = `price-${own}`;
    const from = Date.parse('2026-03-04T09:00:00Z');
    await recordLife(server, tenant, { entity: 'chair', entityId, actor: 'Ann Setter', from }, ['{"n":1,"price":5}']);
    const life = { entity: 'chair', entityId, actor: 'Pat Raiser', from: from + 60_000 };
    await recordLife(server, tenant, { ...life, before: '{"n":1,"price":5}' }, ['{"n":1,"price":7.50}']);
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find(entityId);
    await visitor.click(page.getByRole('button', { name: 'Who touched what last' }));
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'price', exact: true }) });
    await expect.poll(() => row.textContent()).toMatch(/7\.50.*04\/03\/2026.*Pat Raiser/);
    await visitor.done();
  });

  test.each(widths)('a document of last Monday beside that of today (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const entityId = `monday-${own}`;
    const [before, after] = ['{"price":1.10}', '{"price":1.25}'];
    const noon = noonOfYesterday() - 6 * 86_400_000;
    await recordLife(server, tenant, { entity: 'chair', entityId, from: noon - 86_400_000 }, [before]);
    await recordLife(server, tenant, { entity: 'chair', entityId, before, from: noon + 86_400_000 }, [after]);
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find(entityId);
    await page.getByLabel('As on', { exact: true }).fill(new Date(noon).toISOString().slice(0, 19));
    await visitor.click(visitor.button('Beside now'));
    const price = page.locator('.path-item', { hasText: 'price' });
    await expect.poll(() => price.locator('.value-side').allTextContents()).toEqual(['−Before1.10', '+After1.25']);
    await visitor.done();
  });

  test.each(widths)('the last state of a deleted document, as a file (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const entityId = `gone-${own}`;
    await recordLife(server, tenant, { entity: 'chair', entityId }, ['{"price":5.10}', undefined]);
    const visitor = await visit(width, height);
    await visitor.find(entityId);
    expect(JSON.parse(await visitor.save(visitor.button('Download')))).toEqual({ price: 5.1 });
    await visitor.done();
  });

  test.each(widths)('a filtered year as CSV, a row for each field (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const entity = `crate-${own}`;
    const from = Date.now() - 200 * 86_400_000;
    await recordLife(server, tenant, { entity, from }, ['{"a":1,"b":"x"}', '{"a":2,"b":"y"}']);
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find(entity);
    await visitor.click(visitor.button('1 y'));
    await expect.poll(() => totalOf(page)).toBe(2);
    await visitor.click(visitor.button('Export'));
    await visitor.choose(page.getByLabel('Format'), 'CSV, a row for each field of a change');
    await visitor.click(visitor.button('Export 2 changes'));
    const file = await visitor.save(page.getByRole('link', { name: 'Download' }));
    expect(file.startsWith('\ufeff')).toBe(true);
    expect(file.trim().split(/\r?\n/)).toHaveLength(5);
    await visitor.done();
  });

  test.each(widths)('a view is saved, and its address copied for others (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const entity = `shared-${own}`;
    await recordLife(server, tenant, { entity }, ['{"a":1}']);
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find(entity);
    await visitor.click(visitor.button('Save view'));
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type(`What changed ${own}`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: `What changed ${own}` }).waitFor();
    await keepCopies(page);
    await visitor.click(page.getByRole('button', { name: 'Share the address of this view' }));
    const copied = () => page.evaluate(() => globalThis.copiedText);
    await expect.poll(copied).toMatch(/history\?view=[\w-]+$/);
    await visitor.done();
    const token = await server.token(tenant, {});
    const view = new URL((await copied()) ?? '').searchParams.get('view');
    await server.call(`/changelog/${tenant}/views/${view}`, { token, method: 'DELETE' });
  });

  test.each(widths)('changes are followed as they come (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const entity = `pulse-${own}`;
    await recordLife(server, tenant, { entity }, ['{"n":1}']);
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find(entity);
    await page.getByText('Nothing new since').waitFor();
    await recordLife(server, tenant, { entity, before: '{"n":1}', actor: 'Live Wire' }, ['{"n":2}']);
    await visitor.click(visitor.button('1 new change'));
    await page.locator('.entry-row').getByText('Live Wire').waitFor();
    await visitor.done();
  });

  test.each(widths)('what one client has cost, and a budget for it (%d px)', async (width, height) => {
    const { vendor, tenant } = the();
    const call = await caller(the());
    await call('PUT', '/ai-service/demo/agentic/agents/prices', {
      name: { en: 'Prices' },
      llmConfig: { provider: 'shared' },
    });
    vendor.behave({ kind: 'answer', usage: { input: 412, output: 96 } });
    await call('POST', '/ai-service/demo/agentic/chat', { agentId: 'prices', message: 'Hello' });
    vendor.behave({ kind: 'answer' });
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find('Costs');
    await visitor.choose(page.getByLabel('By', { exact: true }), 'By client');
    const row = page.locator('tbody tr').filter({ hasText: '$0.' }).first();
    await row.waitFor();
    await visitor.click(row.getByRole('link', { name: /^Set a budget/ }));
    const dialog = page.getByRole('dialog', { name: 'New budget' });
    await dialog.getByLabel('Limit').fill('50');
    await page.keyboard.press('Enter');
    await page.getByText('of $50.00').waitFor();
    await visitor.done();
    const { items }: { items: { id: string; client?: string }[] } = JSON.parse(
      `{"items":${await call('GET', `/usage/${tenant}/budgets`)}}`,
    );
    for (const { id, client } of items) {
      expect(client).toBeDefined();
      await call('DELETE', `/usage/${tenant}/budgets/${id}`);
    }
  });

  test.each(widths)('an agent is asked about the history (%d px)', async (width, height) => {
    const own = fresh(width);
    const { vendor } = the();
    const call = await caller(the());
    const entity = `asked-${own}`;
    await recordLife(the().server, the().tenant, { entity, actor: 'Rae Sought' }, ['{"n":1}']);
    await call('PUT', '/ai-service/demo/agentic/agents/historian', {
      name: { en: 'Historian' },
      llmConfig: { provider: 'shared' },
      nativeTools: ['change-history'],
    });
    vendor.behave(({ text }) =>
      text.includes('Rae Sought')
        ? { kind: 'answer', text: 'It was Rae Sought.' }
        : { kind: 'answer', toolCall: { id: 'c', name: 'change-history', input: { q: `entity:${entity}` } } },
    );
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find('Chat');
    await visitor.choose(page.getByLabel('Agent', { exact: true }), 'Historian');
    await page.getByLabel('Message').fill('Who made it?');
    await page.keyboard.press('Enter');
    await page.getByText('It was Rae Sought.').waitFor();
    vendor.behave({ kind: 'answer' });
    await visitor.done();
  });

  test.each(widths)('all that a person did yesterday (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const actor = `Yan Yesterday ${own}`;
    const noon = noonOfYesterday();
    await recordLife(server, tenant, { entity: 'chair', entityId: `y-${own}`, actor, from: noon }, [
      '{"n":1}',
      '{"n":2}',
    ]);
    const life = { entity: 'chair', actor, from: noon - 86_400_000 };
    await recordLife(server, tenant, { ...life, entityId: `z-${own}` }, ['{"n":1}']);
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find(actor, new RegExp(`^${actor}.*3 changes`, 's'));
    await page.getByRole('heading', { name: actor, level: 1 }).waitFor();
    await visitor.click(visitor.button('Yesterday'));
    await expect.poll(() => page.locator('.history-total').textContent()).toBe('2');
    await visitor.done();
  });

  test.each(widths)('a webhook is made and tested, and why it breaks can be read (%d px)', async (width, height) => {
    const own = fresh(width);
    const receiver = await startReceiver();
    const name = `Task ${own}`;
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find('Subscriptions');
    await visitor.click(visitor.button('New subscription').first());
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByRole('combobox', { name: 'Query' }).fill(`entity:parcel-${own}`);
    await page.keyboard.press('Escape');
    await page.getByLabel('Address').fill(receiver.url);
    await visitor.click(visitor.button('Save'));
    await visitor.click(page.getByRole('dialog').getByRole('button', { name: 'Done' }));
    await visitor.click(visitor.button('Test'));
    await page.getByRole('dialog').getByText('delivered', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    receiver.answer = (_received, response) => void response.writeHead(500).end('out of paper');
    await visitor.click(visitor.button('Test'));
    const dialog = page.getByRole('dialog');
    await dialog.getByText('failed', { exact: true }).waitFor();
    await dialog.getByText('500').first().waitFor();
    await page.keyboard.press('Escape');
    await visitor.done();
    await page.getByRole('button', { name: 'Delete the subscription' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await receiver.close();
  });

  test.each(widths)('the proof of one change, and the command that verifies it (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, open } = the();
    const tenant = `proven${own}`;
    await server.createTenant(tenant);
    await recordLife(server, tenant, { entity: 'chair', entityId: 'p-1' }, ['{"n":1}']);
    await sealHistory(server, tenant);
    const page = await open('overview', { width, height, tenant });
    const visitor = new Visitor(page);
    await visitor.find('p-1', /p-1/);
    await visitor.click(page.getByRole('link', { name: 'What touched it' }));
    await visitor.click(page.locator('.entry-link').first());
    const saved = await visitor.save(visitor.button('Proof'));
    expect(saved).toMatch(/^\S/);
    await page
      .getByText(/annals proof|annals verify/)
      .first()
      .waitFor();
    await visitor.done();
  });

  test.each(widths)('an alert by e-mail to two people (%d px)', async (width, height) => {
    const own = fresh(width);
    const name = `Deleted ${own}`;
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find('Subscriptions');
    await visitor.click(visitor.button('New subscription').first());
    await visitor.choose(page.getByLabel('Kind of target'), 'E-mail alert');
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByRole('combobox', { name: 'Query' }).fill(`entity:invoice-${own}`);
    await page.keyboard.press('Escape');
    await page.getByLabel('To', { exact: true }).fill('jane@shop.example, joe@shop.example');
    await visitor.click(visitor.button('Save'));
    await page.getByRole('heading', { name }).waitFor();
    await page.getByRole('main').locator('dd').getByText('jane@shop.example, joe@shop.example').waitFor();
    await visitor.done();
    await page.getByRole('button', { name: 'Delete the subscription' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test.each(widths)('a key with limits, and its revocation (%d px)', async (width, height) => {
    const own = fresh(width);
    const name = `Narrow ${own}`;
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find('keys', /^Clients and keys/);
    await visitor.click(page.getByRole('link', { name: 'keys', exact: true }));
    await visitor.click(visitor.button('New key').first());
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(name);
    await visitor.click(dialog.getByLabel('changelog.changelog_read'));
    await dialog.getByLabel('Query').fill('entity:order');
    await dialog.getByLabel('Requests a second').fill('5');
    await page.keyboard.press('Enter');
    await dialog.getByText('is shown only once').waitFor();
    await page.keyboard.press('Escape');
    const row = page.getByRole('row', { name: new RegExp(name) });
    await row.getByText('entity:order').waitFor();
    await visitor.click(row.getByRole('button', { name: `Revoke ${name}` }));
    await visitor.click(dialog.getByRole('button', { name: 'Revoke' }));
    await row.getByText('revoked').waitFor();
    await visitor.done();
  });

  test.each(widths)('the session of a colleague ends (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const colleague = await server.createClient(tenant, { name: `Colleague ${own}` });
    const headers = { origin: server.baseUrl, 'content-type': 'application/json' };
    const body = JSON.stringify({ clientId: colleague.clientId, clientSecret: colleague.clientSecret });
    const signedIn = await fetch(`${server.baseUrl}/console/api/session`, { method: 'POST', headers, body });
    const [cookie = ''] = (signedIn.headers.getSetCookie()[0] ?? '').split(';');
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.click(visitor.button('Search').first());
    await page.getByRole('combobox', { name: 'Search everything' }).fill('sessions');
    // The desk has sessions, too.
    await visitor.click(page.getByRole('option', { name: /^Sessions.*Security/s }));
    await visitor.click(visitor.button(`End the session of Colleague ${own}`));
    await visitor.click(page.getByRole('dialog').getByRole('button', { name: 'End it' }));
    await expect.poll(() => page.getByText(`Colleague ${own}`).count()).toBe(0);
    const answer = await fetch(`${server.baseUrl}/console/api/session`, { headers: { cookie } });
    expect(answer.status).toBe(401);
    await visitor.done();
  });

  test.each(widths)('a word inside a long value (%d px)', async (width, height) => {
    const own = fresh(width);
    const { server, tenant } = the();
    const note = `{"note":"${'It arrived late, said the customer. '.repeat(20)}They wrote Nimbus${own}x.","n":1}`;
    await recordLife(server, tenant, { entity: 'ticket', entityId: `t-${own}` }, [note]);
    const visitor = await visit(width, height);
    const { page } = visitor;
    await visitor.find(`Nimbus${own}`, 'Search for this text in all changes');
    await expect.poll(() => totalOf(page)).toBe(1);
    await page.locator('.entry-link', { hasText: `t-${own}` }).waitFor();
    await visitor.done();
  });

  test('by the keyboard alone: who changed a price, what a person did yesterday, and a word inside a value', async () => {
    const { server, tenant } = the();
    const actor = 'Kay Board';
    const life = { entity: 'chair', entityId: 'keys-1', actor, from: noonOfYesterday() };
    await recordLife(server, tenant, life, ['{"price":5}', '{"price":7.50}']);
    const { page } = await visit(1_440, 900);
    await findByKeys(page, 'keys-1');
    await tabTo(page, page.getByRole('button', { name: 'Who touched what last' }));
    await page.keyboard.press('Enter');
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'price', exact: true }) });
    await expect.poll(() => row.textContent()).toMatch(/7\.50.*Kay Board/);

    await findByKeys(page, actor);
    await page.getByRole('heading', { name: actor, level: 1 }).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Yesterday' }));
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.history-total').textContent()).toBe('2');

    await recordLife(server, tenant, { entity: 'ticket', entityId: 'keys-2' }, [
      '{"note":"They wrote Stratus, twice."}',
    ]);
    await findByKeys(page, 'Stratus', 'Search for this text in all changes');
    await expect.poll(() => totalOf(page)).toBe(1);
    await tabTo(page, page.locator('.entry-link'));
    await page.keyboard.press('Enter');
    await page.locator('.side-panel').getByText('They wrote Stratus').waitFor();
  });
}

/** Opens what the words find first. */
async function findByKeys(page: Page, words: string, option = words): Promise<void> {
  await page.keyboard.press('/');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.type(words);
  await page.getByRole('option', { name: option }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

/** Presses Tab until the control has the focus. */
async function tabTo(page: Page, control: Locator): Promise<void> {
  await control.waitFor();
  const isThere = () => control.evaluate((element) => element === document.activeElement);
  for (let tabs = 0; tabs < 100 && !(await isThere()); tabs += 1) await page.keyboard.press('Tab');
  expect(await isThere()).toBe(true);
}

declare global {
  var copiedText: string | undefined;
}

/** Keeps what the page copies, for `copiedText`. */
async function keepCopies(page: Page): Promise<void> {
  await page.evaluate(() => {
    const writeText = async (text: string) => {
      globalThis.copiedText = text;
    };
    Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText } });
  });
}

/** By the clock of the browser, which is that of Berlin, at any season. */
function noonOfYesterday(): number {
  const day = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short' }).format(Date.now());
  return Date.parse(`${day}T11:00:00Z`) - 86_400_000;
}

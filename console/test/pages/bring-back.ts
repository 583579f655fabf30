import { afterAll, expect, test } from 'vitest';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { recordLife } from '../support/record-life.ts';
import { goWithin } from '../support/windows.ts';

/** How a person brings documents of the service back as they were. */
export function bringBackTests(the: () => ConsoleUnderTest): void {
  /** Calls the service as another client. Throws if it refuses, unless with the expected status. */
  async function call(method: string, path: string, body?: unknown, refusal?: number): Promise<unknown> {
    const { server, tenant } = the();
    const response = await server.call(path.replace(':tenant', tenant), {
      token: await server.token(tenant, { name: 'Somebody Else' }),
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    const text = await response.text();
    if (!response.ok && response.status !== refusal) throw new Error(text);
    return text === '' ? undefined : JSON.parse(text);
  }
  const type = '/schema/:tenant/custom-entities/SHELF';
  const instances = `${type}/instances`;
  const setting = '/configuration/:tenant/configurations/backToken';
  const agent = '/ai-service/:tenant/agentic/agents/back-desk';

  // The tests of other pages count what the tenant has. After a second try it may have only a part of it.
  afterAll(async () => {
    for (const left of [`${instances}/a-1`, `${instances}/b-1`, type, setting, agent])
      await call('DELETE', left, undefined, 404);
  });

  test('an instance is brought back after its changes were shown, never over a change of another client, and created again when deleted', async () => {
    const { open, checkAccessibility } = the();
    await call('PUT', type, { name: { en: 'Shelf' } });
    await call('PUT', `${instances}/a-1`, { name: 'Aisle A', slots: 12 });
    await call('PUT', `${instances}/a-1`, { name: 'Aisle B', slots: 3, note: 'wrong' });
    const page = await open('document?entity=SHELF&id=a-1', { statuses: [409] });
    await page.getByText('Aisle B').first().waitFor();
    // Today's state is there already.
    expect(await page.getByRole('button', { name: 'Bring back' }).count()).toBe(0);
    await page.locator('.timeline-show').last().click();
    await page.getByRole('button', { name: 'Bring back' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('This will change:').waitFor();
    await expect.poll(() => dialog.locator('.path-item h2').allInnerTexts()).toEqual(['name', 'slots', 'note']);
    await checkAccessibility(page, 'dialog');

    await call('PUT', `${instances}/a-1`, { name: 'Aisle A', slots: 5 });
    await dialog.getByRole('button', { name: 'Bring back' }).click();
    await dialog.getByText('Somebody else has changed this document in the meantime').waitFor();
    await expect.poll(() => dialog.locator('.path-item h2').allInnerTexts()).toEqual(['slots']);
    expect(await call('GET', `${instances}/a-1`)).toMatchObject({ slots: 5 });
    await dialog.getByRole('button', { name: 'Bring back' }).click();
    await expect.poll(() => page.locator('.timeline-item').count()).toBe(4);
    await expect.poll(() => page.locator('.timeline-item').first().textContent()).toContain('Robin Reader');
    const brought = await call('GET', `${instances}/a-1`);
    expect(brought).toMatchObject({ name: 'Aisle A', slots: 12, metadata: { version: 4 } });
    expect(brought).not.toHaveProperty('note');

    await call('DELETE', `${instances}/a-1`);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await expect.poll(() => page.locator('.timeline-item').count()).toBe(5);
    // On the page of the deleted document, as at the change before its deletion.
    await page.getByText('Below is its last state.').waitFor();
    await page.getByRole('button', { name: 'Bring back' }).waitFor();
    await page.locator('.timeline-show').nth(1).click();
    await page.getByText('As it was from').waitFor();
    await page.getByRole('button', { name: 'Bring back' }).waitFor();
    await page.getByRole('button', { name: 'Now', exact: true }).click();
    await page.getByText('Below is its last state.').waitFor();
    await page.getByRole('button', { name: 'Bring back' }).click();
    await dialog.getByText('It is deleted. It is created again with:').waitFor();
    await dialog.getByRole('button', { name: 'Create it again' }).click();
    await expect.poll(() => page.locator('.timeline-item').count()).toBe(6);
    expect(await call('GET', `${instances}/a-1`)).toMatchObject({ slots: 12, metadata: { version: 1 } });
  });

  test('a setting and an agent are brought back from a change, and their secrets stay as they are', async () => {
    const { open } = the();
    await call('POST', '/configuration/:tenant/configurations', [
      { key: 'backToken', value: 's1', secured: true, description: 'old' },
    ]);
    await call('PUT', setting, { value: 's2', secured: true, description: 'new' });
    const llmConfig = { provider: 'openai', model: 'gpt-5.4-mini', apiKey: 'sk-1', temperature: 0.2 };
    await call('PUT', agent, { name: { en: 'Back desk' }, userPrompt: 'old', llmConfig });
    await call('PUT', agent, { name: { en: 'Back desk' }, userPrompt: 'new', llmConfig });

    const page = await open('history?q=entity%3Aagent');
    for (const [entity, id, what] of [
      ['configuration', 'backToken', 'value stays as it is today'],
      ['agent', 'back-desk', 'llmConfig.apiKey stays as it is today'],
    ]) {
      await goWithin(page, `history?q=entity%3A${entity}+entityId%3A${id}`);
      await page.locator('.entry-link').first().click();
      await page.getByRole('button', { name: 'Before and after' }).click();
      const before = page.locator('.entry-documents .card').first();
      await before.getByRole('button', { name: 'Bring back' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(what ?? '').waitFor();
      await expect.poll(() => dialog.locator('.path-item').count()).toBe(1);
      await dialog.getByRole('button', { name: 'Bring back' }).click();
      await page.getByRole('heading', { name: `${entity} ${id}` }).waitFor();
      await expect.poll(() => page.locator('.timeline-item').count()).toBe(3);
    }
    expect(await call('GET', setting)).toMatchObject({ description: 'old', secured: true });
    const { server, tenant } = the();
    // The stored secret is that of today: neither an earlier one nor the mask.
    const { configuration } = server.context;
    expect(await configuration.read(tenant, 'backToken')).toEqual({ secured: true, secret: 's2' });
    expect(await call('GET', agent)).toMatchObject({ userPrompt: 'old', llmConfig: { apiKey: '********' } });
  });

  test('who may not write it, documents of other applications, and those that are not wholly known have no such action', async () => {
    const { server, tenant, open } = the();
    await call('PUT', type, { name: { en: 'Shelf' } });
    await call('PUT', `${instances}/b-1`, { slots: 1 });
    await call('PUT', `${instances}/b-1`, { slots: 2 });
    const button = { name: 'Bring back' };
    const reader = await open('document?entity=SHELF&id=b-1&changes=1', {
      scope: 'changelog.changelog_read schema.custominstance_read',
    });
    await reader.locator('.json-tree').waitFor();
    expect(await reader.getByRole('button', button).count()).toBe(0);
    await recordLife(server, tenant, { entity: 'ORDER', entityId: '7' }, ['{"a":1}', '{"a":2}']);
    const other = await open('document?entity=ORDER&id=7&changes=1');
    await other.locator('.json-tree').waitFor();
    // Whether the type is one of this service comes later.
    await other.waitForLoadState('networkidle');
    expect(await other.getByRole('button', button).count()).toBe(0);
    await recordLife(server, tenant, { entity: 'SHELF', entityId: 'c-1', before: '{"a":1,"b":1}' }, [
      '{"a":2,"b":1}',
      '{"a":3,"b":1}',
    ]);
    // One whose beginning is not known.
    await goWithin(other, 'document?entity=SHELF&id=c-1&changes=1');
    await other.getByText('It cannot be brought back as it was then: not all of it is known.').waitFor();
    expect(await other.getByRole('button', button).count()).toBe(0);
  });
}

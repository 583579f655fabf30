import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { checkScrolling } from '../support/accessibility.ts';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { goWithin } from '../support/windows.ts';

const types = '/schema/demo/custom-entities';
const attack = '<img src=x onerror=alert(1)>\u202egnp';

/** What a person does with the tenant's data. */
export function dataTests(the: () => ConsoleUnderTest): void {
  test('instances are sorted, filtered and paged, and the view is shared by its address', async () => {
    const { open, checkAccessibility } = the();
    const call = await caller(the());
    await call('PUT', `${types}/SHELF`, { name: { en: 'Shelf' } });
    const ids = Array.from({ length: 53 }, (_, index) => `shelf-${String(index).padStart(2, '0')}`);
    await Promise.all(
      ids.map((id, index) =>
        call('PUT', `${types}/SHELF/instances/${id}`, `{"name":${JSON.stringify(attack)},"load":${index}.10}`),
      ),
    );
    const page = await open('data/types');
    await page.getByRole('link', { name: 'SHELF' }).click();
    await page.getByRole('heading', { name: 'Shelf SHELF' }).waitFor();
    await page.getByText('53 instances').waitFor();
    const rows = () => page.locator('tbody .row-link').allInnerTexts();
    await expect.poll(rows).toEqual(ids.slice(0, 50));
    // What the data holds is text, and marks that turn text round are shown.
    await page.getByText('<img src=x onerror=alert(1)>').first().waitFor();
    await page.getByText('U+202E').first().waitFor();
    await page.getByRole('button', { name: 'load' }).click();
    await page.getByRole('button', { name: 'load' }).click();
    await expect.poll(rows).toEqual(ids.toReversed().slice(0, 50));
    await page.getByText('52.10', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await expect.poll(rows).toEqual(['shelf-02', 'shelf-01', 'shelf-00']);
    await page.getByText('53 instances').waitFor();
    await checkAccessibility(page);
    // The address has all of it.
    await page.setViewportSize({ width: 380, height: 800 });
    await page.reload();
    await page.getByText('shelf-01').waitFor();
    expect(await sidewaysRoom(page)).toBe(0);
    await page.getByLabel('Filter').fill('load:<1');
    await page.keyboard.press('Enter');
    await expect.poll(rows).toEqual(['shelf-00']);
  });

  test('a type is made, changed and deleted, and one who may only read it sees no way to', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('data/types', { statuses: [400] });
    await page.getByRole('button', { name: 'New type' }).first().click();
    const [id, definition, save] = [
      page.getByLabel('Id', { exact: true }),
      page.getByLabel('Definition'),
      page.getByRole('button', { name: 'Save' }),
    ];
    await id.fill('pallet');
    await page.getByText('Capital letters, digits and _, a letter first.').waitFor();
    expect(await save.isDisabled()).toBe(true);
    await id.fill('PALLET');
    await definition.fill('{"name":{"en":"Pallet"},"jsonSchema":{"properties":{"load":{"maximum":1.50}}}');
    await page.getByText(/^Line 1, column \d+: expected , or }/).waitFor();
    expect(await save.isDisabled()).toBe(true);
    await checkAccessibility(page);
    await definition.fill('{"name":{"en":"Pallet"},"jsonSchema":{"properties":{"load":{"maximum":1.50}}}}');
    await save.click();
    await page.getByText('The type PALLET is saved.').waitFor();
    const row = page.getByRole('row', { name: /^PALLET Pallet JSON Schema/ });
    await row.getByRole('link', { name: 'Definition' }).click();
    // The number of the schema is as it was written.
    await expect.poll(() => definition.inputValue()).toContain('1.50');
    const reader = await open('data/type/edit?type=PALLET', { scope: 'schema.schema_read' });
    await expect.poll(() => reader.getByLabel('Definition').isEditable()).toBe(false);
    expect(await reader.getByRole('button', { name: /Save|Delete/ }).count()).toBe(0);
    await definition.fill('{"name":{"en":"Pallet"},"jsonSchema":{"type":"no such type"}}');
    await save.click();
    await page.getByRole('alert').waitFor();
    // An error of what was sent leaves when something else is written.
    await definition.fill('{"name":{"en":"Pallet"}}');
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    await page.getByRole('button', { name: 'Delete the type' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The type PALLET is deleted.').waitFor();
    await expect.poll(() => row.count()).toBe(0);
  });

  test('a document is edited against its schema with every digit, and its history is one click away', async () => {
    const { open, checkAccessibility } = the();
    const call = await caller(the());
    const schema = { properties: { state: { enum: ['NEW', 'OLD'] }, price: { minimum: 0 } }, required: ['state'] };
    await call('PUT', `${types}/CRATE`, { name: { en: 'Crate' }, jsonSchema: schema });
    const digits = '"price":1.10,"big":9007199254740993,"least":-0,"vast":1E400,"by":{"10":1,"2":0.50}';
    await call('PUT', `${types}/CRATE/instances/crate`, `{"state":"NEW",${digits}}`);
    const page = await open('data/type?type=CRATE&item=crate', { statuses: [400, 409] });
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const editor = page.getByLabel('Document');
    const text = await editor.inputValue();
    await page.getByText('Fits the schema of its type.').waitFor();
    await editor.fill(text.replace('"NEW"', '"LOST"'));
    await page.getByText('Does not fit the schema of its type').waitFor();
    await page.locator('.schema-faults code').getByText('state').waitFor();
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').waitFor();
    await editor.fill(text.replace('"NEW",', '"OLD"'));
    // An error of what was sent leaves when something else is written.
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    await page.getByText(/^Line 3, column \d+: expected , or }/).waitFor();
    await editor.fill(text.replace('"NEW"', '"OLD"'));
    // Another client writes it: nothing of theirs is lost.
    await call('PATCH', `${types}/CRATE/instances/crate`, [{ op: 'add', path: '/note', value: 'mine' }]);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Somebody else has changed this document since you opened it.').waitFor();
    // That stays true while writing here.
    await editor.press('End');
    await editor.press('Space');
    await page.getByText('Somebody else has changed this document since you opened it.').waitFor();
    await page.getByRole('button', { name: 'Show the newest' }).click();
    await page.locator('.json-tree').getByText('mine').waitFor();
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await editor.fill((await editor.inputValue()).replace('"NEW"', '"OLD"'));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.json-tree').getByText('OLD').waitFor();
    expect(await call('GET', `${types}/CRATE/instances/crate`)).toContain(`"state":"OLD",${digits},"note":"mine"`);
    await page.getByRole('complementary').getByRole('link', { name: 'History' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toContain('entity:CRATE entityId:crate');
  });

  test('settings are changed with every digit, and a secret is never shown', async () => {
    const { open, checkAccessibility } = the();
    const call = await caller(the());
    const configurations = '/configuration/demo/configurations';
    await call('POST', configurations, '[{"key":"rates","value":{"10":1.10,"2":0.190}}]');
    const page = await open('data/configuration');
    await page.getByText('{"10":1.10,"2":0.190}').waitFor();
    await page.getByRole('button', { name: 'Edit rates' }).click();
    const value = page.getByLabel('Value');
    await value.fill((await value.inputValue()).replace('0.190', '0.200'));
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('{"10":1.10,"2":0.200}').waitFor();
    await page.getByRole('button', { name: 'New setting' }).click();
    await page.getByLabel('Key', { exact: true }).fill('shopToken');
    await page.getByLabel('Secured').check();
    await page.getByLabel('Secret').fill('sk-very-secret');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row', { name: /shopToken secured 1/ }).waitFor();
    expect(await page.content()).not.toContain('sk-very-secret');
    await page.getByRole('button', { name: 'Delete shopToken' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await expect.poll(() => page.getByRole('button', { name: 'Delete shopToken' }).count()).toBe(0);
    const viewer = await open('data', { scope: 'configuration.configuration_view' });
    await viewer.getByText('{"10":1.10,"2":0.200}').waitFor();
    await expect.poll(() => viewer.getByRole('main').getByRole('button').allInnerTexts()).toEqual(['']);
    // So the keyboard reaches a table that scrolls by itself.
    await viewer.setViewportSize({ width: 380, height: 760 });
    await checkScrolling(viewer);
  });

  test('an export is started, watched, downloaded and deleted', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('data/jobs');
    await page.getByRole('button', { name: 'New export' }).first().click();
    await page.getByLabel('Query').fill('entity:product type:create occurredAt:>="1970-01-01T00:00:00Z"');
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    const row = page.getByRole('row', { name: 'entity:product type:create' });
    const file = row.getByRole('link', { name: 'NDJSON' });
    await file.waitFor();
    const entries = Number(/^([\d,]+) change/.exec((await row.locator('.muted.number').textContent()) ?? '')?.[1]);
    const download = page.waitForEvent('download');
    await file.click();
    const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(entries);
    await row.locator('.row-link').click();
    await page.getByRole('complementary').getByText('entity:product type:create').waitFor();
    await checkAccessibility(page);
    await page.getByRole('complementary').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The job is deleted.').waitFor();
    await expect.poll(() => file.count()).toBe(0);
  });

  test('accesses tell who signed in and who exported what, and are found by kind', async () => {
    const { open, checkAccessibility } = the();
    const call = await caller(the());
    const made = await call('POST', '/ai-service/demo/jobs', { type: 'EXPORT', q: 'entity:coupon', format: 'NDJSON' });
    const job = `/ai-service/demo/jobs/${JSON.parse(made).jobId}`;
    await expect.poll(async () => JSON.parse(await call('GET', job)).status).toBe('success');
    await call('GET', `${job}/content`);
    await call('DELETE', job);
    for (let count = 0; count < 2; count += 1)
      await call('POST', '/changelog/demo/viewer-tokens', { q: 'entity:order', subject: 'Customer 17' });
    const page = await open('security/accesses?q=kind%3Aviewer_token_made');
    await page.getByRole('cell', { name: 'Viewer token made' }).waitFor();
    await page.getByRole('cell', { name: '2 times for Customer 17' }).waitFor();
    await checkAccessibility(page);
    await goWithin(page, 'security/accesses');
    await page.getByRole('cell', { name: 'Signed in' }).first().waitFor();
    // Where from, with what, and in which session.
    const signedIn = page.getByRole('row', { name: /Signed in/ }).first();
    await signedIn.getByRole('cell', { name: '127.0.0.1' }).waitFor();
    await signedIn.getByRole('cell', { name: /^Chrome \d+, Linux$/ }).waitFor();
    await signedIn.getByRole('button').click();
    await expect.poll(() => page.getByLabel('Filter').inputValue()).toMatch(/^session:"/);
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    await goWithin(page, 'data/accesses');
    await page.getByRole('button', { name: 'Exports', exact: true }).click();
    await page.getByRole('cell', { name: 'Export downloaded' }).first().waitFor();
    await page
      .getByRole('cell', { name: /^NDJSON, / })
      .first()
      .waitFor();
    await expect.poll(() => page.getByRole('cell', { name: 'Signed in' }).count()).toBe(0);

    const other = await open('security/accesses', { scope: 'ai.agent_read' });
    await other.getByText('There is no such page').waitFor();
  });

  test('one who may read the history alone sees the own exports, and no sign that a part is hidden', async () => {
    const { open } = the();
    const call = await caller(the());
    await call('POST', '/ai-service/demo/jobs', { type: 'EXPORT', q: 'entity:coupon', format: 'CSV' });
    const page = await open('history?q=entity%3Aquote+type%3Adelete', { scope: 'changelog.changelog_read' });
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    // The context is for those who may read it.
    expect(await page.getByRole('dialog').getByRole('checkbox').count()).toBe(0);
    await page.getByRole('button', { name: /^Export \d+ changes?$/ }).click();
    await page.getByRole('link', { name: 'Download' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Data', exact: true }).click();
    await page.getByText('Your exports of the history.').waitFor();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    await page.locator('.row-link').click();
    const panel = page.getByRole('complementary');
    await panel.getByText('entity:quote type:delete').waitFor();
    await panel.getByRole('link', { name: 'NDJSON' }).waitFor();
    expect(await panel.getByText(/hidden|may not read/).count()).toBe(0);
    await panel.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The job is deleted.').waitFor();

    const other = await open('data/jobs', { scope: 'ai.agent_read' });
    await other.getByText('Export', { exact: true }).first().waitFor();
    await other.locator('.row-link').first().click();
    await other.getByText('Some of this job is hidden').waitFor();
    expect(await other.getByRole('complementary').getByRole('button', { name: 'Delete' }).count()).toBe(0);
  });
}

import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { readBundle } from '../../../src/proof/bundle/read-bundle.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { verifyBundle } from '../../../src/proof/verify/verify-bundle.ts';
import { verifyProof } from '../../../src/proof/verify/verify-proof.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';
import { sealHistory } from '../support/seal-history.ts';
import { goWithin } from '../support/windows.ts';

/** What an auditor takes away. */
export function proofTests(the: () => ConsoleUnderTest): void {
  test('a checkpoint, the key and the proof of a change are files, and the page says how far the history is sealed', async () => {
    const { server, open, checkAccessibility } = the();
    const { db } = server.context;
    // To seal the history of the shop takes as long as all that follows.
    const tenant = 'sealed';
    await server.createTenant(tenant);
    await recordLife(server, tenant, { entity: 'product', entityId: 'brisk-go' }, ['{"n":1}', '{"n":2}', '{"n":3}']);
    await recordLife(server, tenant, { entity: 'product', entityId: 'other' }, ['{"n":1}', undefined]);
    const page = await open('security/proof', { tenant, statuses: [404] });
    await page.getByText('This history is not sealed yet').waitFor();
    await sealHistory(server, tenant);
    const log = await readLog(db, tenant);
    await page.reload();
    await page.getByRole('heading', { name: `Sealed up to change ${log?.size.toLocaleString('en-GB')}` }).waitFor();
    await page.getByText('The history was sealed for the first time').waitFor();
    await checkAccessibility(page);
    expect(await saved(page, 'Checkpoint')).toBe(log?.checkpoint);
    expect(await saved(page, 'Verifier key')).toBe(`${log?.vkey}\n`);

    await page.setViewportSize({ width: 380, height: 800 });
    expect(await sidewaysRoom(page)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 860 });
    await goWithin(page, 'history?q=entity%3Aproduct+entityId%3Abrisk-go');
    await page.locator('.entry-link').first().click();
    const save = page.getByRole('button', { name: 'Proof', exact: true });
    const [file] = await Promise.all([page.waitForEvent('download'), save.click()]);
    const name = file.suggestedFilename();
    expect(name).toMatch(/^product-brisk-go-20\d\d-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.proof$/);
    await page.getByText(`annals verify ${name} --key "$(cat sealed.vkey)"`).waitFor();
    await page.getByRole('button', { name: 'Copy the command' }).waitFor();
    await checkAccessibility(page);
    await page.setViewportSize({ width: 390, height: 800 });
    await expect.poll(() => sidewaysRoom(page)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 860 });
    const proof = await readFile(await file.path(), 'utf8');
    expect(verifyProof(proof, [log?.vkey ?? ''])).toMatchObject({ size: log?.size, hidden: [] });
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await page.getByRole('dialog').getByLabel('With proof that nothing was altered').check();
    expect(await page.getByLabel('Format').isDisabled()).toBe(true);
    await checkAccessibility(page, 'dialog');
    await page.getByRole('button', { name: 'Export with proof' }).click();
    const bundle = await downloaded(page, () => page.getByRole('link', { name: 'Download' }).click());
    const trusted = { keys: [log?.vkey ?? ''], accept: new Set<string>() };
    const { isRight, counts } = await verifyBundle(
      () => readBundle(bundle),
      trusted,
      () => {},
    );
    expect([isRight, counts.get('verified')]).toEqual([true, 3]);
    const reader = await open('history?q=entity%3Aproduct+entityId%3Abrisk-go', {
      tenant,
      scope: 'changelog.changelog_read',
    });
    await reader.locator('.entry-link').first().click();
    await reader.getByRole('complementary').getByText('Who').waitFor();
    expect(await reader.getByRole('button', { name: 'Proof' }).count()).toBe(0);
  });
}

/** The text of the file that the button saves. */
async function saved(page: Page, button: string): Promise<string> {
  const file = await downloaded(page, () => page.getByRole('button', { name: button, exact: true }).click());
  return await readFile(file, 'utf8');
}

/** The path of the file that a click saves. */
async function downloaded(page: Page, click: () => Promise<void>): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent('download'), click()]);
  return await download.path();
}

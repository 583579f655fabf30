import type { Configuration } from './service.ts';

/** Where e-mails to the tenant go (contract: auto-disable). */
const notificationEmailKey = 'notificationEmail';

/** Characters of JSON text. An address has 254 characters, and JSON can write each with six. */
const maxAddressText = 2_000;

/** The address; undefined where the value is missing or is no e-mail address. */
export async function readNotificationEmail(
  configuration: Pick<Configuration, 'read'>,
  tenant: string,
): Promise<string | undefined> {
  const value = await configuration.read(tenant, notificationEmailKey);
  if (value === undefined) return undefined;
  // A value that is longer than any address is no address, so Annals does not read it.
  if (!value.secured && value.json.length > maxAddressText) return undefined;
  const address: unknown = value.secured ? value.secret : JSON.parse(value.json);
  if (typeof address !== 'string') return undefined;
  const trimmed = address.trim();
  return trimmed.length <= 254 && /^[^\s@<>()[\],;:"\\]+@[^\s@<>()[\],;:"\\]+$/.test(trimmed) ? trimmed : undefined;
}

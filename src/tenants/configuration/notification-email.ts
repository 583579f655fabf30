import type { Configuration } from './service.ts';

/** The recipient of e-mails to the tenant (contract: auto-disable). */
const notificationEmailKey = 'notificationEmail';

/** Characters of JSON text. An address has at most 254 characters, each at most six in JSON. */
const maxAddressText = 2_000;

/** The address; undefined where the value is missing or not an e-mail address. */
export async function readNotificationEmail(
  configuration: Pick<Configuration, 'read'>,
  tenant: string,
): Promise<string | undefined> {
  const value = await configuration.read(tenant, notificationEmailKey);
  if (value === undefined) return undefined;
  // Longer than any address, so it is not parsed.
  if (!value.secured && value.json.length > maxAddressText) return undefined;
  const address: unknown = value.secured ? value.secret : JSON.parse(value.json);
  if (typeof address !== 'string') return undefined;
  const trimmed = address.trim();
  return trimmed.length <= 254 && /^[^\s@<>()[\],;:"\\]+@[^\s@<>()[\],;:"\\]+$/.test(trimmed) ? trimmed : undefined;
}

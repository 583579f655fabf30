/** The address of a self-hosted server: http or https, without user, query and fragment. */
export const serverAddressPattern = '^[Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#@\\\\]+(/[^\\s?#]*)?$';
export const maxServerAddress = 2_048;

const serverAddress = new RegExp(serverAddressPattern);

export function isServerAddress(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length <= maxServerAddress && serverAddress.test(value) && URL.canParse(value)
  );
}

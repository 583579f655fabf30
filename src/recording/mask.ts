/** What stands in answers and change entries instead of a secret or a masked value. */
export const mask = '********';

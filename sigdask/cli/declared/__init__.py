"""The commands as click knows them: options, groups, help, and the address of the function that runs each."""

package remoting_test

const roleVariable = "REMOTING_ROLE"

func play(string) int { return 2 }
